# fish completion of recorder. The program itself knows the candidates: recorder complete WORD...

function __recorder_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    for line in ($words[1] complete $words[2..-1] "$typed" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $typed
            case :dirs
                __fish_complete_directories $typed
            case '*'
                echo $line
        end
    end
end
complete -c recorder -f -k -a '(__recorder_complete)'
